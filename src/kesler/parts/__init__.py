"""Parts of a learner: hypotheses, feature maps, rules, links, kernels, preprocessing, costs."""
