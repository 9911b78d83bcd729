"""What the commands do, and examples: the texts of their help."""

from __future__ import annotations

INPUT = """\
INPUT is a file in one of the formats below, compressed or not (gzip, bzip2, xz,
Zstandard, zip), a directory of mail or of Parquet files, a built-in data set
(dataset:letter, dataset:pendigits, dataset:landsat or dataset:banking77), or - for
standard input. Label-dependent features are read as ratings of the classes by
sub-experts, for the hypotheses sub-experts and multi+sub-experts."""

ORDER = """\
A model, a journal or the settings of a mailbox are named first, and then what is
read, such as kesler learn MODEL INPUT."""

EXIT = """\
exit codes: 0 success; 2 error, with a message on standard error; 3 more rows
skipped than --max-bad allows; 130 interrupted"""

COMPARE = f"""\
Compare several methods on one stream, or on each of several. Each method predicts
every row before it learns from it; the first row of a class is not counted as a
mistake. A line is printed when the number of trials reaches a power of two, and
at the end: the trials so far, the classes seen and, for each method, its mistakes
in % of the trials so far (error) and, with up to three methods, of those since
the previous line (last). The methods learn in threads, one for each core. rows/s
is based on the processor time for learning, of all methods together in the table
and of each method in the summary; it excludes reading and the first trial, which
loads the compiled code.

Without --methods these are compared: the default learner (default), several of
them whose predictions are mixed (ensemble), the three ways of sharing hypotheses
(multi, single, hybrid; under PA-I) and, if rows list every one of at most 100
features, the default with an rbf kernel and at most 20,000 support vectors
(kernel). Two baselines, in the summary only, give a sense of scale: always the
most frequent class so far, and the last answer again. Options of learners, such
as --update, then apply to multi, single and hybrid.

{INPUT}"""

COMPARE_EXAMPLES = f"""\
examples:
  kesler compare dataset:letter --plot letter.png
  kesler compare dataset:letter dataset:banking77/stream --plot both.png
  kesler compare dataset:letter --update perceptron --bounds
  kesler compare tickets.csv --label queue --text body --delay 5
  kesler compare ~/Maildir --C 0.01
  kesler compare tickets.csv --label queue --text subject,body
  kesler compare rows.svm --methods hybrid:pa1:0.01,hybrid:simproj:0.01

{EXIT}"""

LEARN = f"""\
Learn from a stream with one method, print its errors on rows that it had not
seen before (progressive validation), and write the model.

{INPUT}"""

LEARN_EXAMPLES = f"""\
examples:
  kesler learn mail.kesler mail.jsonl --update pa1 --C 0.01
  kesler learn d.kesler "tickets.db?select team, body from tickets" --label team
  kesler learn m.kesler long.vw --checkpoint 100000
  kesler learn m.kesler long.vw --checkpoint 100000 --resume

{EXIT}"""

PREDICT = f"""\
Print the predicted class of each row, one line for each row. Rows need no
labels. --format, --label and --text default to those used to learn the model.
Line ends, tabs and backslashes in names of classes are printed as \\n, \\t and
\\\\; --json-lines and --output give the names themselves. A row that --skip-bad
skips has an empty line, or a row without a class.

{INPUT}"""

PREDICT_EXAMPLES = f"""\
examples:
  kesler predict mail.kesler new.jsonl
  kesler predict mail.kesler new.jsonl -n 3
  kesler predict mail.kesler new.jsonl --min-confidence 0.8
  kesler predict mail.kesler new.jsonl --coverage 0.9
  kesler predict species.kesler reads.fastq.gz --path ';'
  kesler predict desk.kesler new.csv --id ticket --output teams.csv
  cat new.jsonl | kesler predict mail.kesler - --scores --json-lines

{EXIT}"""

EXPLAIN = f"""\
Print why each row has its predicted class: the words, pairs of words and other
cells that contribute most to its margin over another class, as a table for each
row. Rows need no labels. --format, --label and --text default to those used to
learn the model.

{INPUT}"""

EXPLAIN_EXAMPLES = f"""\
examples:
  kesler explain mail.kesler new.jsonl
  kesler explain mail.kesler new.jsonl -n 5 --class spam --rival work
  kesler explain mail.kesler new.jsonl --features
  cat new.jsonl | kesler explain mail.kesler - --json-lines

{EXIT}"""

TEST = f"""\
Score labelled rows with a model, which does not learn from them, and print a
report: the error, precision and recall of each class, the classes that are
confused most, the error over the rows and by confidence, and the mistakes of
which the model is surest, some of which may be wrong labels. Rows with labels
that the model does not know are counted apart. --format, --label and --text
default to those used to learn the model. Rows of weight 0 are skipped; other
weights have no effect.

{INPUT}"""

TEST_EXAMPLES = f"""\
examples:
  kesler test mail.kesler new.jsonl
  kesler test mail.kesler new.jsonl --report page.html -n 30
  kesler test mail.kesler new.jsonl --json report.json

{EXIT}"""

SHARE = f"""\
Select a few features that are shared by all classes (ShareBoost), one after the
other, and print for each selection the training loss, the norm of the gradient
by which it was selected and, with --valid or --holdout, the error on rows that
were not used for training. All rows are stored in memory.

{INPUT}"""

SHARE_EXAMPLES = f"""\
examples:
  kesler share dataset:pendigits --features 10 --holdout 0.2 --plot path.png
  kesler share rows.csv --label kind --dictionary stumps --export kinds.c
  kesler share train.svm --features 5 --valid test.svm --json path.json

{EXIT}"""

SHOW = """\
Print the contents of a model file: the parts of the learner, its preprocessing,
the numbers of trials and mistakes, its features and classes."""

SHOW_EXAMPLES = f"""\
examples:
  kesler show mail.kesler
  kesler show mail.kesler --json -

{EXIT}"""


WARM_UP = """\
Compile everything that learners may need, print what was compiled and how long it
took, and keep it in the cache of this machine (NUMBA_CACHE_DIR), so that no later
process waits for a compiler. What the cache contains is not compiled again."""

WARM_UP_EXAMPLES = f"""\
examples:
  kesler warm-up
  NUMBA_CACHE_DIR=/var/cache/kesler kesler warm-up

{EXIT}"""


UNDO = """\
Take back events of a model of a journal (kesler.durable), such as answers that
were wrong: the model is then the one that has never met them. What was taken
back is valid again if its undo is taken back. Without an ID, the last events
are printed, with their time, kind, id, answer and row."""

UNDO_EXAMPLES = f"""\
examples:
  kesler undo desk.db                      the last events
  kesler undo desk.db m17 m18 --model mail

{EXIT}"""


JOURNAL = """\
Show that nobody has changed the history of a journal (kesler.durable). Each
event has a digest of what it says and of the event before it. verify says
whether all fit, with the last digest of each model, or which do not; export
prints the events of a model with their digests as lines of JSON, which can be
checked without Kesler."""

JOURNAL_EXAMPLES = f"""\
examples:
  kesler journal verify desk.db
  kesler journal export desk.db --model mail > mail.jsonl

{EXIT}"""


SERVE = """\
Serve the models of a journal (kesler.durable) over HTTP, by JSON and by pages
with which people file items by keyboard. DATABASE is made if it does not exist.

Whoever asks needs a token, which is a line of the file of --token-file or of the
variable KESLER_TOKENS: ROLE NAME SECRET [MODELS], where ROLE is read, teach or
admin. Without any, a new token is made and printed within the address, and the
server is reached from this machine only. /api describes the interface."""

SERVE_EXAMPLES = f"""\
examples:
  kesler serve desk.db
  kesler serve desk.db --port 8080 --token-file tokens.txt
  KESLER_TOKENS="teach ann $SECRET" kesler serve desk.db --host 0.0.0.0

{EXIT}"""


MAIL = """\
Learn a mailbox of IMAP, or a Maildir, from where its messages are, and predict or
file what is new in the inbox. Each folder is a class, but for those that are never
touched. A message that a person moves into another class is learnt; moves of Kesler
are not. Nothing is moved unless the settings or --action say so. Bodies of messages
are not stored, but the words of those that are learnt."""

MAIL_EXAMPLES = f"""\
examples:
  kesler mail setup mail.toml --server imap.example.org --user ann
  kesler mail setup mail.toml --maildir ~/Maildir
  kesler mail learn mail.toml
  kesler mail watch mail.toml
  kesler mail watch mail.toml --action move --error 0.01
  kesler mail watch mail.toml --once
  kesler mail status mail.toml -n 5
  kesler mail report mail.toml
  kesler mail explain mail.toml '<1@example.org>'
  kesler mail undo mail.toml '<1@example.org>'
  kesler mail deliver --model mail --default INBOX < message.eml

{EXIT}"""
