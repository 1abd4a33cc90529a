"""Players of a battle server, and one that is an environment to learn in"""

import asyncio
import json
import queue
import random
import threading

import numpy as np

POKE_LOOP = asyncio.new_event_loop()
threading.Thread(target=POKE_LOOP.run_forever, daemon=True, name="poke_loop").start()


class Battle:
    def __init__(self, battle_tag, username):
        self.battle_tag, self.username = battle_tag, username
        self.turn, self.won, self.teams = 0, None, {}
        self.health, self.observations = {}, {}

    @property
    def finished(self):
        return self.won is not None

    def parse_message(self, split_message):
        kind = split_message[1]
        if kind == "turn":
            self.turn = int(split_message[2])
        elif kind == "player":
            self.teams[split_message[2]] = split_message[3:]
            self.health[split_message[2]] = 100.0
        elif kind == "-damage":
            self.health[split_message[2].split(":")[0]] = float(split_message[3].split("/")[0])
        elif kind == "win":
            self.won = split_message[2] == self.username
        self.observations.setdefault(self.turn, []).append(split_message)


class Player:
    def __init__(self, username, port):
        self.username, self._battles = username, {}
        asyncio.run_coroutine_threadsafe(self._connect(port), POKE_LOOP).result()

    async def _connect(self, port):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        self._send({"user": self.username})
        self._listening = asyncio.ensure_future(self._listen())

    def _send(self, message):
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def _listen(self):
        while line := await self.reader.readline():
            message = json.loads(line)
            tag = message["battle"]
            if tag not in self._battles:
                self._battles[tag] = Battle(tag, self.username)
            battle = self._battles[tag]
            for text in message["messages"].split("\n"):
                battle.parse_message(text.split("|"))
            await self._handle_battle_request(battle)

    async def _handle_battle_request(self, battle):
        if not battle.finished:
            self._send({"battle": battle.battle_tag, "choice": await self.choose_move(battle)})

    async def choose_move(self, battle):
        raise NotImplementedError

    def search(self):
        POKE_LOOP.call_soon_threadsafe(self._send, {"search": True})

    def reset_battles(self):
        """Forgets the battles that are over"""
        self._battles = {tag: battle for tag, battle in self._battles.items() if not battle.finished}


class RandomPlayer(Player):
    async def choose_move(self, battle):
        return random.randrange(10)


class EnvPlayer(Player):
    def __init__(self, username, port, opponent):
        self._reward_buffer = {}
        self._observations, self._actions = queue.Queue(), asyncio.Queue()
        self.opponent, self.current_battle = opponent, None
        super().__init__(username, port)

    async def _handle_battle_request(self, battle):
        self._observations.put(battle)
        await super()._handle_battle_request(battle)

    async def choose_move(self, battle):
        return await self._actions.get()

    def reward_computing_helper(self, battle, victory_value=5.0):
        """The change of the battle's value since the last call"""
        if battle not in self._reward_buffer:
            self._reward_buffer[battle] = 0.0
        foe = next(name for name in battle.teams if name != self.username)
        current_value = (battle.health[self.username] - battle.health[foe]) / 100.0
        if battle.finished:
            current_value += victory_value if battle.won else -victory_value
        to_return = current_value - self._reward_buffer[battle]
        self._reward_buffer[battle] = current_value
        return to_return

    def embed_battle(self, battle):
        foe = next(name for name in battle.teams if name != self.username)
        health = [battle.health[self.username] / 100, battle.health[foe] / 100, battle.turn / 40]
        return np.array(health + [len(name) / 12 for name in battle.teams[self.username]], np.float32)

    def reset(self):
        self.search()
        self.opponent.search()
        self.current_battle = self._observations.get(timeout=30)
        return self.embed_battle(self.current_battle)

    def step(self, action):
        POKE_LOOP.call_soon_threadsafe(self._actions.put_nowait, action)
        battle = self._observations.get(timeout=30)
        return self.embed_battle(battle), self.reward_computing_helper(battle), battle.finished
