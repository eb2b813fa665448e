"""The student edition in _build/student: for each chapter an assignment, without solutions and hidden tests.

nbgrader's course, with the solutions and the hidden tests, is in _build/instructor/course, and is the teacher's.
"""

import shutil

import assignments
import build_book
import exercise_list

STUDENT = build_book.BUILD / "student"
COURSE = build_book.BUILD / "instructor" / "course"
TERMS = ["LICENSE", "LICENSE-text", "CITATION.cff"]
HELPERS = ["pepcore", "data"]        # the package that assignments import, and the data that it reads
NEEDED = ["numpy", "scipy", "pandas", "scikit-learn", "threadpoolctl", "tqdm", "pooch", "jupyterlab"]
READ_ME = """# Exercises

A folder for each chapter with its exercises. With Python 3.11 or newer, in this folder:

    python -m pip install -r requirements.txt
    jupyter lab

Leave the folder `helpers` where it is: it holds the package `pepcore` and its data. Code is under the MIT licence
(`LICENSE`), text under CC BY 4.0 (`LICENSE-text`).
"""


def make(student, course):
    """Write the course and, from nbgrader's releases, the student edition."""
    chapters = exercise_list.chapters()
    assignments.make_course(chapters, course)
    shutil.rmtree(student, ignore_errors=True)
    student.mkdir(parents=True)
    for chapter in chapters:
        shutil.copytree(course / "release" / chapter.stem, student / chapter.stem)
    for name in HELPERS:
        for path in build_book.files(build_book.ROOT / name):
            copied = student / "helpers" / path.relative_to(build_book.ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copied)
    for name in TERMS:
        shutil.copy2(build_book.ROOT / name, student / name)
    (student / "README.md").write_text(READ_ME)
    (student / "requirements.txt").write_text("".join(pins()))
    return chapters


def pins():
    """The lines of the lock for the packages that students need."""
    lines = (build_book.ROOT / "requirements.txt").read_text().splitlines(keepends=True)
    return [line for line in lines if line.split("==")[0] in NEEDED]


def main():
    chapters = make(STUDENT, COURSE)
    print(f"{sum(len(chapter.exercises) for chapter in chapters)} exercises and "
          f"{sum(len(chapter.questions) for chapter in chapters)} questions in {len(chapters)} assignments: "
          f"{STUDENT.relative_to(build_book.ROOT)}")
    print(f"nbgrader's course, with solutions and hidden tests: {COURSE.relative_to(build_book.ROOT)}")


if __name__ == "__main__":
    main()
