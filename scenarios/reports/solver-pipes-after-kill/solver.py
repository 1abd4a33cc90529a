"""A small solver: looks for a model of a query by brute force"""

import hashlib
import sys

with open(sys.argv[1]) as file:
    header, digits, seed = file.read().split()
target = "0" * int(digits)
number = 0
while True:
    digest = hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()
    if digest.startswith(target):
        print("sat")
        print(f"(model (define-fun x () Int {number}))")
        break
    number += 1
