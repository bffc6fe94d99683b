"""From statements to a logical plan: binding names, and rewriting by an ordered list of rules."""
