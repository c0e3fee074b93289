"""Few combinations of options in which every two choices meet at least once."""


def pairwise(random, **dimensions):
    """Yields dicts of one choice per dimension. Greedy: each row takes the best of some random tries."""
    names = list(dimensions)
    choices = [range(len(dimensions[name])) for name in names]
    left = {
        (i, a, j, b)
        for i in range(len(names))
        for j in range(i + 1, len(names))
        for a in choices[i]
        for b in choices[j]
    }

    def pairs_of(row):
        return {(i, row[i], j, row[j]) for i in range(len(row)) for j in range(i + 1, len(row))}

    while left:
        best, most = None, set()
        wanted = min(left)
        for _ in range(50):
            row = [random.choice(one) for one in choices]
            row[wanted[0]], row[wanted[2]] = wanted[1], wanted[3]
            met = pairs_of(row) & left
            if len(met) > len(most):
                best, most = row, met
        left -= most
        yield {name: dimensions[name][choice] for name, choice in zip(names, best)}
