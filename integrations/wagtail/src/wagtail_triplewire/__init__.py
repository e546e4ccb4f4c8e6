"""Pages of a Wagtail site publish themselves to a Triplewire service, and readers subscribe to what matches."""
