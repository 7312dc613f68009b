"""Time-lined TCP: B. Mukherjee and T. Brecht, "Time-lined TCP for the TCP-friendly Delivery of
Streaming Media", ICNP 2000.
"""
