"""What people and machines that watch a job are told: the report, its live page, its health."""
