"""Files of a source, wherever they lie: a folder of this machine, or a prefix in an object store."""
