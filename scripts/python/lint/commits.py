# SPDX-License-Identifier: Apache-2.0
"""Subjects of commits: short, and begun with what the commit does ("record: move the lock here")."""

import re
import subprocess

MOST_LETTERS = 72
# Commits up to this one are as they are; a newer tag takes its place.
BEFORE = "18cd9011111650daf8caa0d05f239f07fe1825d4"

ROOMS = re.compile(r"[\w./,{}+ -]+: ")
# No rule tells verbs from nouns: these are the ones that changes need. Another one is added here.
VERBS = set("""accept add adopt agree align allocate allow answer apply ask assert avoid await bear begin bind blame
borrow bound branch break bring build bump cache call carry catch change charge check choose clamp clean clear clip
close collapse collect combine compare compile complete compress compute configure connect convert copy correct count
cover create cross cut decide declare decode decouple deduplicate defer define delay delete deliver deny depend
deprecate derive describe detach detect diff disable discard display divide document drain draw drop dump duplicate
emit empty enable encode end enforce enqueue ensure enter escape estimate evaluate exchange exclude execute exercise
exit expect explain export expose express extend extract fail fall fence fetch fill filter find finish fit fix flag
flatten flush fold follow forbid force forget format free freeze fuse gate gather generate get give go group grow
guard halve handle help hide hint hoist hold honour hook identify ignore implement import improve include infer
inherit inline insert inspect install interpret isolate issue join keep launch lay lead learn leave let lift limit
link lint list listen load lock log look loosen lose lower make map mark match measure mend merge migrate mirror mock
model move name narrow normalise note notice number obey observe offer omit open order overlap pack pad parse part
pass patch pause permit permute pick pin place plan point poll post postpone prefer prepare preserve pretend prevent
price print probe profile promote protect prove prune publish pull push put queue quote raise reach read rearrange
rebuild record recover redo reduce refer refine refuse regenerate register reject relax release reload rely remember
remove rename render reorder repair repeat rephrase replace report reproduce request require rerun reserve reset
reshape reshard resolve restart restore restrict resume retire retry return reuse revert reword rework rewrite rotate
round route run sample save say scale scan schedule search see seed select send separate serve set settle shard share
ship shorten show shrink sign silence simplify simulate sink skip slice solve sort spawn specialise speed spell spill
split start stay stop store stream strip subtract support surface survive suspend swap switch sync tag take teach tell
test throw tidy tie tile time toggle tolerate trace track train translate transpose treat trim trust try tune turn
unblock undo unify unite unlock unpack unroll unwind update upgrade use validate vary vectorise verify visit wait wake
warm warn watch weigh widen work wrap write yield""".split())
# A noun stands before these.
FINITE = {"is", "are", "was", "were", "has", "have", "had", "can", "cannot", "may", "must", "will"}


def verb_fault(words):
    """Why the first of these words is not the verb of a command; None if it may be."""
    if not words or words[0].lower() not in VERBS:
        return "is no verb in its base form that the list of scripts/python/lint/commits.py has"
    if len(words) > 1 and words[1].lower() in FINITE:
        return f"has '{words[1]}' behind it"
    return None


def subject_faults(subject):
    if len(subject) > MOST_LETTERS:
        yield f"{len(subject)} letters (at most {MOST_LETTERS}); the body has room for more"
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return
    match = ROOMS.match(subject)
    words = subject[match.end() if match else 0:].split()
    fault = verb_fault(words)
    if fault:
        yield f"'{words[0] if words else ''}' {fault}; say what the commit does (room: move the lock)"


def git(root, *words):
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def begin_of(root):
    """The commit after which subjects are looked at: the newest tag's, if it has BEFORE behind it."""
    tag = (git(root, "describe", "--tags", "--abbrev=0") or "").strip()
    if tag and git(root, "merge-base", "--is-ancestor", BEFORE, tag) is not None:
        return tag
    return BEFORE


def check(root, selection, options):
    """Files that the user named are no commits."""
    if selection.named:
        return []
    begin = options.since or begin_of(root)
    listed = git(root, "log", "--no-merges", "--format=%h %s", f"{begin}..HEAD")
    if listed is None:
        # A clone may be too shallow to have BEFORE.
        return [f"there is no commit '{begin}' here; fetch it, or name another"] if options.since else []
    return [f"{commit}: {fault}: {subject}" for commit, _, subject in
            (line.partition(" ") for line in listed.splitlines()) for fault in subject_faults(subject)]
