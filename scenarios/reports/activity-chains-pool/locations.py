"""The stage of the locations: where each person does what the day asks for"""

import time

import numpy as np
import population

FACILITIES, ZONE_S = 540, 0.13


def travel_times(context, zone):
    """Between all facilities of a zone; neighbours ask for the same zones again"""
    if zone not in context.made:
        source = np.random.default_rng(zone)
        facilities = context.data["centres"][zone] + source.normal(0.0, 3.0, (FACILITIES, 2))
        distances = np.sqrt(np.square(facilities[:, None] - facilities[None]).sum(2))
        context.made[zone] = facilities, 2.0 + 1.6 * distances
    return context.made[zone]


def assign(context, zone):
    begin = time.monotonic()
    facilities, minutes = travel_times(context, zone)
    homes = context.data["centres"][zone] + context.data["homes"][zone]
    first = np.square(homes[:, None] - facilities[None]).sum(2).argmin(1)
    source, best, least = np.random.default_rng(zone + 1), None, np.inf
    rounds = 0
    while rounds == 0 or time.monotonic() < begin + ZONE_S:
        second, third = source.integers(0, FACILITIES, (2, len(homes)))
        total = (minutes[first, second] + minutes[second, third] + minutes[third, first]).sum()
        if total < least:
            best, least = np.stack([first, second, third], 1).astype(np.int16), total
        rounds += 1
    return zone, best, float(least) / len(homes)


def execute(context):
    data = context.stage(population)
    zones, minutes, chains = context.config["zones"], 0.0, {}
    with context.parallel(data) as parallel:
        for done, (zone, best, mean) in enumerate(parallel.imap_unordered(assign, range(zones)), 1):
            chains[zone] = best
            minutes += mean
            if done % 50 == 0:
                print(f"{done} of {zones} zones, {minutes / done:.1f} minutes a day", flush=True)
    return chains
