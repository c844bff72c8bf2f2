"""The two sides of `spark_pace.spark.checkpoint.file_access`: files on a disk, and objects in a store."""
