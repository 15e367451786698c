#!/usr/bin/python3
"""The pages of docs/verdicts: each is built in, can be shown in a terminal, and leads only to what is there; and what cannot be shown
is refused when it is built.

    test_why_pages.py
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = sorted(glob.glob(ROOT + "/docs/verdicts/*.md"))
sys.path.insert(0, ROOT + "/src/cli")
sys.dont_write_bytecode = True
import why_pages  # noqa: E402

GOOD = "# leak:x\n\nIt grows.\n\n" + "\n\n".join(f"## {name}\nSome `code_*` and *words*." for name in why_pages.SECTIONS) + "\n"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Pages(unittest.TestCase):
    def test_all_are_built_in(self):
        listed = re.search(r"foreach id : \[(.*?)\]", read(ROOT + "/src/cli/meson.build"), re.S)[1]
        self.assertEqual(set(re.findall(r"'([\w-]+)'", listed)), {os.path.basename(path)[:-3] for path in PAGES})

    def test_each_can_be_shown(self):
        for path in PAGES:
            name, line, text = why_pages.page_of(path)
            self.assertTrue(text.startswith(f"{name}: {line}\n\nWHAT IT MEANS\n"), path)
            self.assertNotRegex(text, r"\*\*|\]\(|(?m:^#)", path)

    def test_links_lead_somewhere(self):
        for path in PAGES + glob.glob(ROOT + "/docs/*.md"):
            for link in re.findall(r"\]\(([^)#\s]+)", read(path)):
                if not link.startswith("http"):
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(path), link)), f"{path}: {link}")

    def test_the_overview_names_each(self):
        overview = read(ROOT + "/docs/verdicts.md")
        for path in PAGES:
            self.assertTrue(f"(verdicts/{os.path.basename(path)})" in overview, path)


class Rendering(unittest.TestCase):
    def test_marks_go(self):
        name, line, text = why_pages.rendered(GOOD.replace("Some", "See [`this`](that.md), or [that](x/y.md). Some", 1))
        self.assertEqual((name, line), ("leak:x", "It grows."))
        self.assertIn("WHAT IT MEANS\nSee this, or that. Some code_* and words.\n", text)

    def test_lists_and_output(self):
        body = "- one\n  and more\n- " + "two " * 30 + "\n\n    $ antifreeze why\n    run 1: " + "word " * 20 + "\n      because    x\n"
        text = why_pages.rendered(GOOD + "\n" + body)[2]
        self.assertIn("\n- one and more\n- two two", text)
        self.assertIn("\n  two two", text)
        self.assertIn("\n$ antifreeze why\nrun 1: word", text)
        self.assertIn("\n  because    x\n", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_what_cannot_be_shown_is_refused(self):
        bad = {
            "no title": GOOD[2:],
            "no line": GOOD.replace("It grows.\n\n", ""),
            "a long line": GOOD.replace("It grows.", "It grows " * 10),
            "a section that is missing": GOOD.replace("## What it is not\n", ""),
            "sections in another order": GOOD.replace("What it means", "?").replace("An example", "What it means").replace("?", "An example"),
            "a table": GOOD + "\n| a | b |\n",
            "a fence": GOOD + "\n```\nx\n```\n",
            "code that is too wide": GOOD + "\n    " + "x" * 90 + "\n",
            "not ASCII": GOOD + "\n\u2192\n",
        }
        for what, text in bad.items():
            with self.subTest(what), self.assertRaises(why_pages.Bad):
                why_pages.rendered(text)

    def test_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            def make(name, text):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                return subprocess.run([sys.executable, why_pages.__file__, path, folder + "/out.c"], capture_output=True, text=True, check=False)
            self.assertEqual(make("leak-x.md", GOOD).returncode, 0)
            self.assertIn('{"leak:x", "It grows.", text_0}', read(folder + "/out.c"))
            refused = make("other.md", GOOD)
            self.assertEqual((refused.returncode, refused.stderr), (1, f"{folder}/other.md: its title is 'leak:x', which is another name\n"))


if __name__ == "__main__":
    unittest.main()
