"""A battle server: pairs the players that search, plays their turns, and tells both what happened"""

import asyncio
import itertools
import json
import random

SPECIES = "Garchomp Corviknight Toxapex Dragapult Ferrothorn Rotom Heatran Clefable Landorus Tyranitar Zapdos Blissey"
MOVES = "Earthquake Roost Scald Hex Knock-Off Volt-Switch Lava-Plume Moonblast U-turn Stone-Edge Hurricane Toxic"
EVENTS_PER_TURN = 40


class Room:
    def __init__(self, tag, users):
        self.tag, self.users, self.rng = tag, users, random.Random(tag)
        self.health = {user: 100.0 for user in users}
        self.team = {user: self.rng.sample(SPECIES.split(), 6) for user in users}
        self.choices, self.turn = {}, 0

    def play(self):
        """The lines of a turn, and the winner when there is one"""
        self.turn += 1
        lines = [f"|turn|{self.turn}"]
        for user, foe in (self.users, self.users[::-1]):
            strength = 2.0 + self.choices[user] % 4 * 0.9 + self.rng.random()
            self.health[foe] = max(0.0, self.health[foe] - strength)
            own, other = self.team[user][self.choices[user] % 6], self.team[foe][self.turn % 6]
            lines.append(f"|-damage|{foe}: {other}|{self.health[foe]:.1f}/100")
            for number in range(EVENTS_PER_TURN // 2):
                move = self.rng.choice(MOVES.split())
                damage = f"[damage] {self.rng.random() * 9:.3f} hit {number}"
                lines.append(f"|move|{user}: {own}|{move}|{foe}: {other}|{damage}")
        self.choices = {}
        fallen = [user for user in self.users if self.health[user] == 0]
        winner = next((user for user in self.users if user not in fallen), self.users[0]) if fallen else None
        if winner:
            lines.append(f"|win|{winner}")
        return lines, winner


class Server:
    def __init__(self):
        self.writers, self.searching, self.rooms, self.tags = {}, [], {}, itertools.count(1)

    def tell(self, room, lines):
        data = json.dumps({"battle": room.tag, "messages": "\n".join(lines)}).encode() + b"\n"
        for user in room.users:
            self.writers[user].write(data)

    async def handle(self, reader, writer):
        user = json.loads(await reader.readline())["user"]
        self.writers[user] = writer
        while line := await reader.readline():
            message = json.loads(line)
            if "search" in message:
                self.searching.append(user)
                if len(self.searching) == 2:
                    room = Room(f"battle-gen9randombattle-{next(self.tags)}", sorted(self.searching))
                    self.searching, self.rooms[room.tag] = [], room
                    self.tell(room, [f"|player|{name}|{'|'.join(room.team[name])}" for name in room.users])
            elif (room := self.rooms.get(message["battle"])) is not None:
                room.choices[user] = message["choice"]
                if len(room.choices) == 2:
                    lines, winner = room.play()
                    if winner:
                        del self.rooms[room.tag]
                    self.tell(room, lines)
            await writer.drain()


async def main():
    server = await asyncio.start_server(Server().handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
