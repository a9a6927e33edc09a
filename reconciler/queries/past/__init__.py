"""What was: promises that were settled, states that were committed, and the commits behind them."""
