"""IFTP: H. ElAarag and M. Bassiouni, "A TCP-friendly Protocol for Media Streams over Best Effort
Networks".
"""
