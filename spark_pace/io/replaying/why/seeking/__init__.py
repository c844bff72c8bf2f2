"""How far candidates with an event came, and what stopped each: a plain search around the event."""
