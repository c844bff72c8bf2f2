"""Files wherever they lie: on this machine, in an object store or on HDFS. `files` is their one face."""
