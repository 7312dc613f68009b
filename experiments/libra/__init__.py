"""TCP Libra: G. Marfia, C. Palazzi, G. Pau, M. Gerla, M. Sanadidi and M. Roccetti, "Balancing Video
on Demand Flows over Links with Heterogeneous Delays", Mobimedia 2007.
"""
