"""Where records live.  The only code that speaks SQL."""
