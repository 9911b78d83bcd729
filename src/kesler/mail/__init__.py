"""Mail that files itself: messages as rows, and the threads that they belong to."""
