"""Where the events of a job come from: folders of files, Delta tables, topics of Kafka."""
