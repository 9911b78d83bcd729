"""Views of an instance: feature maps, class statistics, given views."""
