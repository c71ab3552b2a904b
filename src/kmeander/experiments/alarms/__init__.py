"""False alarms and power: how often events come where nothing changed, and where something did."""
