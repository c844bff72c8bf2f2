"""The sources of a job's events: folders of files, Delta tables, topics of Kafka."""
