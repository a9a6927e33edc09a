"""What a browser is told while a page is open: new commits, and the calendar that changes with them."""
