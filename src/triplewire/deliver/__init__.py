"""Deliveries of events to who waits for them, over one durable schedule."""
