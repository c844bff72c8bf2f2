"""A load driver: sends events to a job at the times of a schedule, and measures until its matches are there.

After FINCoS: Mendes 2013, chapter 3.
"""
