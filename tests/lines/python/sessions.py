"""A server's sessions in a defaultdict; clients come with a new name each time."""
import collections
import time
import uuid

sessions = collections.defaultdict(list)


def handle(client, request):
    body = (request * 40).upper()  # the line
    sessions[client].append(body)
    return len(body)


for number in range(40_000):
    client = str(uuid.uuid4())
    handle(client, f"request {number} from {client}: please tell me the weather. ")
    if number % 2000 == 0:
        print(number, "requests,", len(sessions), "sessions", flush=True)
    if number % 4 == 0:
        time.sleep(.002)
