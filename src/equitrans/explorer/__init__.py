"""A web page on loopback for looking at trained models: views, a desk that works them out, a guard
at the door.
"""
