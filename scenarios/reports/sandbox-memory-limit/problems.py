"""The reference answers: problems of plain Python first, then those of the numeric set"""

# Each answer repeats its work for a share of time, as the judge does for a stable measure
REPEAT = """
import sys, time
begin, seed, rounds = time.monotonic(), int(sys.stdin.read()), 0
while time.monotonic() < begin + 1.3:
    answer = solve(seed)
    rounds += 1
print(answer)
"""

PLAIN = {
    "collatz": """
def solve(seed):
    best = 0
    for start in range(seed, seed + 400):
        steps, value = 0, start
        while value != 1:
            value = 3 * value + 1 if value & 1 else value >> 1
            steps += 1
        best = max(best, steps)
    return best
""",
    "partitions": """
def solve(seed):
    ways = [1] + [0] * (seed + 300)
    for part in range(1, len(ways)):
        for total in range(part, len(ways)):
            ways[total] += ways[total - part]
    return ways[-1] % 1000007
""",
    "knapsack": """
def solve(seed):
    best = [0] * 4000
    for item in range(1, 40):
        weight, value = (item * seed) % 97 + 1, (item * 31 + seed) % 89
        for room in range(len(best) - 1, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[-1]
""",
    "words": """
def solve(seed):
    text = " ".join(f"w{(seed * number) % 613}" for number in range(9000))
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return max(counts.values())
""",
}

NUMERIC = {
    "walks": """
import numpy as np
def solve(seed):
    steps = np.random.default_rng(seed).integers(0, 2, (400, 800)) * 2 - 1
    return int(np.abs(steps.cumsum(1)).max())
""",
    "spectrum": """
import numpy as np
def solve(seed):
    matrix = np.random.default_rng(seed).normal(size=(120, 120))
    return round(float(np.abs(np.linalg.eigvals(matrix)).max()), 3)
""",
    "lines": """
import numpy as np
def solve(seed):
    x = np.linspace(0, 1, 4000)
    y = seed * x + np.random.default_rng(seed).normal(size=4000) / 50
    return round(float(np.polyfit(x, y, 1)[0]))
""",
}


def problems():
    for seed in range(8):
        for name, code in PLAIN.items():
            yield f"{name}/{seed}", code + REPEAT, str(seed + 27)
    for seed in range(4):
        for name, code in NUMERIC.items():
            yield f"{name}/{seed}", code + REPEAT, str(seed + 3)
