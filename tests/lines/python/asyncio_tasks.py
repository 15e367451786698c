"""Tasks that have ended are kept in a list, and with them their results."""
import asyncio

tasks = []


async def fetch(number):
    await asyncio.sleep(.005)
    return "".join(f"{number}:{i};" for i in range(4000))  # the line


async def main():
    for number in range(12_000):
        tasks.append(asyncio.ensure_future(fetch(number)))
        await asyncio.sleep(.002)
        if number % 50 == 0:
            print(number, sum(t.done() for t in tasks), flush=True)


asyncio.run(main())
