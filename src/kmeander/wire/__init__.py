"""What sources and sinks share: the Kafka client and Arrow arrays."""
