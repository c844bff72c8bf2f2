"""Where the events of a job come from: folders of files, topics of Kafka."""
