"""How the Python processes of Spark on this machine are started: forked, with their imports done."""
