"""Runs an agent's command, and hears it line by line"""

import asyncio
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


async def run_agent(name, prompt, folder, heard):
    path = os.path.join(folder, f"{name}.md")
    with open(path, "w") as file:
        file.write(prompt)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        os.path.join(HERE, "agent.py"),
        name,
        path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    result = None
    try:
        while line := await process.stdout.readline():
            event = json.loads(line)
            heard(event)
            if event["type"] == "result":
                result = event["text"]
    except ValueError as error:
        raise RuntimeError(f"{name} agent failed: {error}") from error
    finally:
        if process.returncode is None and result is None:
            process.kill()
        await process.wait()
    return result
