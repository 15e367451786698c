"""A small program in a package of its own: run -> read -> parse -> build, each in its own file."""
from pipeline.run import run

if __name__ == "__main__":
    run(2500)
