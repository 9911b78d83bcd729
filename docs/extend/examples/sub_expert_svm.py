"""A support vector machine over sub-experts, which keeps the instances of earlier trials."""

from kesler import threshold_algorithm

# [svm]
KEPT, MOST, SWEEPS = 200, 5, 200  # instances, their non-zeros, and passes over them in a trial
COUNT, FIRST = 8, 9  # among the numbers: how many instances are kept, and where they begin
WIDTH = 2 + 2 * MOST  # of each: the dual variable, the number of non-zeros, positions and values


@threshold_algorithm(n_states=1, n_numbers=FIRST + KEPT * WIDTH, parameters=(1.0,))
def sub_expert_svm(parameters, positions, z, margin, weights, states, numbers):
    n = int(numbers[COUNT])
    if margin >= 1 or n == KEPT or len(z) > MOST:
        return
    last = FIRST + n * WIDTH
    numbers[last + 1] = len(z)
    for j in range(len(z)):
        numbers[last + 2 + j], numbers[last + 2 + MOST + j] = positions[j], z[j]
    numbers[COUNT] = n + 1
    w = states[0]  # the weights in float64
    for _ in range(SWEEPS):  # of dual coordinate ascent over all instances so far
        for start in range(FIRST, last + 1, WIDTH):
            lead, length = 0.0, 0.0
            for j in range(int(numbers[start + 1])):
                value = numbers[start + 2 + MOST + j]
                lead += w[int(numbers[start + 2 + j])] * value
                length += value * value
            dual = min(parameters[0], max(0.0, numbers[start] + (1 - lead) / length))
            for j in range(int(numbers[start + 1])):
                step = (dual - numbers[start]) * numbers[start + 2 + MOST + j]
                w[int(numbers[start + 2 + j])] += step
            numbers[start] = dual
    for start in range(FIRST, last + 1, WIDTH):
        for j in range(int(numbers[start + 1])):
            position = int(numbers[start + 2 + j])
            weights[position] = w[position]
