"""The directives, one file each. Each checks everything before it changes the schedule."""
