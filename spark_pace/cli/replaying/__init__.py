"""The commands over files of events in this process: what rules find, and why."""
