"""The tools of the agent"""

import asyncio
import os
import sys

RG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rg.py")
MAX_MATCHES = 200


class GrepTool:
    name = "grep"

    async def execute(self, pattern, root):
        """The first matches, as lines"""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            RG,
            pattern,
            root,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        matches = []
        async for line in process.stdout:
            if len(matches) < MAX_MATCHES:
                matches.append(line.decode(errors="replace").rstrip())
        await process.wait()
        return matches
