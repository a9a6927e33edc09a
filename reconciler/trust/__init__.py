"""Whose changes count: keys, identities, the policy of paths and fields, and the judging of changes."""
