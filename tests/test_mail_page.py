"""Messages that wait on the page of the service, and what is answered there."""

import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler.durable import Journal
from kesler.durable.items import Items
from kesler.mail.settings import MailSettings
from kesler.mail.sorter import Sorter
from kesler.service.refusals import Refusal
from kesler.service.rows_in import Taught
from kesler.service.served import Served
from test_mail_failures import InMemory, message

FILED = 60


class Desk:
    """A sorter of a mailbox in memory, and the model as the service has it."""

    def __init__(self, path, **settings):
        self.path, self.server = path, InMemory()
        for number in range(FILED):
            folder = ("Bills", "Team")[number % 2]
            self.server.put(folder, message(number, folder))
        self.journal, self.other = Journal(path), Journal(path)
        self.use(**settings)
        self.look(predict=False)
        self.items = Items(path)
        self.served = Served("mail", self.other.open("mail"), self.items)

    def use(self, **settings):
        values = {"server": "h", "user": "u", "error": 0.3} | settings
        self.sorter = Sorter(self.journal, MailSettings(values))

    def close(self):
        self.served.close()
        for each in (self.items, self.journal, self.other):
            each.close()

    def look(self, **options):
        return [tuple(each)[:3] for each in self.sorter.look(self.server, **options)]

    def arrive(self, number, folder="Bills"):
        self.server.put("INBOX", message(number, folder))
        return f"<{number}@x>"

    def waiting(self):
        return {each.id: (each.title, each.note) for each in self.items.page("mail", "", 0, 20)}

    def answer(self, id, label):
        item = self.items.get("mail", id)
        (outcome,) = self.served.learn([Taught(item.row, label, id, item.subject)], "ann").result()
        assert not isinstance(outcome, Refusal), outcome

    def undo(self, id):
        self.served.change(lambda: self.served.undo(id, "ann")).result()

    def where(self, identity):
        found = [
            name
            for name, box in self.server.boxes.items()
            for each in box.values()
            if identity.encode() in each
        ]
        (folder,) = found
        return folder


@pytest.fixture
def desk(tmp_path, request):
    found = Desk(str(tmp_path / "mail.db"), **getattr(request, "param", {"page": "subjects"}))
    yield found
    found.close()


def test_nothing_waits_on_the_page_by_default(tmp_path):
    desk = Desk(str(tmp_path / "mail.db"))
    desk.arrive(500)
    desk.look()
    assert desk.waiting() == {} and desk.sorter.model.kept("answers") == {}
    desk.close()


@pytest.mark.parametrize("page", ["folders", "subjects"])
def test_subjects_are_kept_only_if_that_is_wanted(tmp_path, page):
    desk = Desk(str(tmp_path / "mail.db"), page=page)
    one = desk.arrive(500)
    desk.look()
    title = "note 500\nann@example.org" if page == "subjects" else ""
    assert desk.waiting() == {one: (title, None)}
    desk.use(page="folders")
    desk.look()
    assert desk.waiting() == {one: ("", None)}
    desk.use(page="nothing")
    desk.look()
    assert desk.waiting() == {} and desk.sorter.model.kept("answers") == {}
    desk.close()
    stored = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"note 500" not in stored


def test_an_answer_of_the_page_is_learnt_once_and_the_person_may_move_the_message(desk):
    one, two = desk.arrive(500), desk.arrive(501)
    desk.look()
    desk.answer(one, "Team")
    assert desk.look() == [("learnt", one, "Team")]
    assert [*desk.waiting()] == [two] and desk.where(one) == "INBOX"  # a dry run
    record = desk.sorter.known.records[one]
    assert (record.guess, record.is_right, record.due) == ("Bills", False, None)
    assert desk.look() == []
    desk.server.file(one, "INBOX", "Team")
    assert desk.look() == [("learnt", one, "Team")]
    events = [each for each in desk.sorter.model.history(None) if each.id == one]
    assert len(events) == 1 and desk.sorter.model.n_trials_ == FILED + 1
    assert (
        desk.sorter.known.threads.folders
        == Sorter(desk.journal, desk.sorter.settings).known.threads.folders
    )


@pytest.mark.parametrize("answer", ["Bills", "Team"])
@pytest.mark.parametrize("desk", [{"page": "subjects", "action": "move"}], indirect=True)
def test_messages_are_moved_to_their_answers_from_wherever_they_are(desk, answer):
    one = desk.arrive(500)
    assert desk.look()[-1] == ("moved", one, "Bills")
    assert desk.waiting() == {one: ("note 500\nann@example.org", "moved to Bills")}
    desk.answer(one, answer)
    moved = [("moved", one, "Team")] if answer == "Team" else []
    assert desk.look() == [("learnt", one, answer), *moved]
    assert desk.look() == [] and desk.where(one) == answer and desk.waiting() == {}
    assert desk.sorter.known.records[one].is_right is (answer == "Bills")
    desk.undo(one)
    assert desk.waiting() == {one: ("", None)}  # not the words of the message
    assert desk.look() == [("taken back", one, "INBOX")]
    assert desk.look() == [] and desk.where(one) == "INBOX"
    assert desk.waiting() == {one: ("note 500\nann@example.org", None)}
    desk.answer(one, "Team")
    assert desk.look() == [("learnt", one, "Team"), ("moved", one, "Team")]
    assert desk.look() == []
    assert [each.current for each in desk.sorter.model.remaining() if each.id == one] == ["Team"]


@pytest.mark.parametrize("desk", [{"page": "subjects", "action": "move"}], indirect=True)
def test_an_answer_that_is_corrected_in_the_history_moves_the_message(desk):
    one = desk.arrive(500)
    desk.look()
    desk.look()
    desk.answer(one, "Bills")
    desk.look()
    desk.served.change(lambda: desk.served.relabel(one, "Team", "ann")).result()
    assert desk.look() == [("learnt", one, "Team"), ("moved", one, "Team")]
    assert desk.look() == []


@pytest.mark.parametrize("again", [False, True])
def test_threads_forget_an_answer_that_is_taken_back_on_the_page(desk, again):
    one = desk.arrive(500)
    desk.look()
    before = dict(desk.sorter.known.threads.folders)
    desk.answer(one, "Team")
    desk.look()
    if again:
        desk.served.change(lambda: desk.served.relabel(one, "Bills", "ann")).result()
        desk.look()
    assert desk.sorter.known.threads.folders != before
    desk.undo(one)
    desk.look()
    assert desk.sorter.known.threads.folders == before


def test_a_person_s_move_beats_an_answer_of_the_same_moment(desk):
    one = desk.arrive(500)
    desk.look()
    desk.answer(one, "Bills")
    desk.server.file(one, "INBOX", "Team")
    assert desk.look() == [("learnt", one, "Team")]
    assert [each.current for each in desk.sorter.model.remaining() if one in each.id] == ["Team"]
    assert desk.look() == []


def test_an_answer_while_the_sorter_learns_a_move_is_not_learnt_twice(desk, monkeypatch):
    """The answer comes between two steps of a look."""
    one = desk.arrive(500)
    desk.look()
    desk.server.file(one, "INBOX", "Team")

    def late(known, by):
        desk.answer(one, "Bills")

    monkeypatch.setattr("kesler.mail.sorter.hear", late)
    assert desk.look() == [("learnt", one, "Team")]
    monkeypatch.undo()
    assert [each.current for each in desk.sorter.model.remaining() if one in each.id] == ["Team"]
    assert desk.look() == []


def test_what_was_moved_by_hand_does_not_wait_any_more(desk):
    one = desk.arrive(500)
    desk.look()
    desk.server.file(one, "INBOX", "Bills")
    desk.look()
    assert desk.waiting() == {}


def test_what_was_discarded_does_not_come_back(desk):
    one = desk.arrive(500)
    desk.look()
    assert desk.items.discard("mail", [one]) == 1
    two = desk.arrive(501)
    desk.look()
    assert [*desk.waiting()] == [two]


def test_items_that_are_no_messages_are_left_alone(desk):
    desk.items.add("mail", [desk.items.get("mail", "x") or _item("a row by hand")])
    desk.arrive(500)
    desk.look()
    desk.use(page="nothing")
    desk.look()
    assert [*desk.waiting()] == ["a row by hand"]


def _item(id):
    from kesler.durable.items import Item

    return Item(id, {"word": 1.0})


def test_answers_of_the_page_survive_an_end_at_any_step(desk, monkeypatch):
    """The process ends when it has heard of the answer, and when it has learnt of its thread."""
    one = desk.arrive(500)
    desk.look()
    desk.answer(one, "Team")

    class End(BaseException):
        pass

    def end(*_):
        raise End

    for step in ("answered", "Page"):
        monkeypatch.setattr(f"kesler.mail.sorter.{step}", end)
        with pytest.raises(End):
            desk.look()
        monkeypatch.undo()
        desk.use(page="subjects")
    desk.look()
    record = desk.sorter.known.records[one]
    assert (record.answer, record.due) == ("Team", None) and desk.waiting() == {}
    assert desk.sorter.model.n_trials_ == FILED + 1 and not desk.journal.check()


def test_an_answer_that_is_no_folder_moves_nothing(desk, caplog):
    desk.use(page="subjects", action="move", error=0.001)
    one = desk.arrive(500)
    desk.look()
    desk.answer(one, "Unknown")
    assert desk.look() == [("learnt", one, "Unknown")]
    assert "make it in the mail program" in caplog.text and desk.where(one) == "INBOX"
    assert desk.served.answers == ["Bills", "Team"]


def test_of_many_messages_the_last_are_shown(desk, monkeypatch):
    monkeypatch.setattr("kesler.mail.summary.MOST_SHOWN", 3)
    sent = [desk.arrive(500 + number) for number in range(5)]
    desk.look()
    assert [*desk.waiting()] == sent[2:]
    sent.append(desk.arrive(600))
    desk.look()
    assert [*desk.waiting()] == sent[3:]


def test_messages_take_the_places_of_those_that_were_answered(desk, monkeypatch):
    monkeypatch.setattr("kesler.mail.summary.MOST_SHOWN", 3)
    sent = [desk.arrive(500 + number) for number in range(5)]
    desk.look()
    for each in sent[2:]:
        desk.answer(each, "Bills")
    desk.look()
    assert [*desk.waiting()] == sent[:2]


@pytest.mark.parametrize("desk", [{"page": "subjects", "action": "move"}], indirect=True)
def test_a_message_whose_answer_the_command_takes_back_waits_again(desk):
    one = desk.arrive(500)
    desk.look()
    desk.answer(one, "Team")
    desk.look()
    assert desk.waiting() == {}
    desk.sorter.undo(one)
    desk.look()
    assert [id.partition(" ")[0] for id in desk.waiting()] == [one] and desk.where(one) == "INBOX"


def test_a_message_that_could_not_be_read_is_shown_when_it_can(desk, monkeypatch):
    one = desk.arrive(500)
    monkeypatch.setattr("kesler.mail.sorter.Sorter._messages", lambda *_: iter(()))
    desk.look()
    assert desk.waiting() == {}
    monkeypatch.undo()
    desk.look()
    assert [*desk.waiting()] == [one]


def test_classes_are_those_of_the_folders(desk):
    """Another name would be that of no folder."""
    desk.arrive(500)
    desk.look()
    for change in (desk.served.rename, desk.served.merge):
        with pytest.raises(Refusal, match="such as the folders of a mailbox"):
            desk.served.change(lambda change=change: change("Bills", "Team", "ann")).result()


def test_databases_of_former_versions_get_the_new_columns(tmp_path):
    path = str(tmp_path / "desk.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE service_items (place INTEGER PRIMARY KEY, model TEXT NOT NULL, "
            "id TEXT NOT NULL, data TEXT NOT NULL, subject TEXT, arrived REAL NOT NULL, "
            "UNIQUE (model, id))"
        )
        database.execute("INSERT INTO service_items VALUES (1, 'mail', 'a', '\"text\"', 'bob', 7)")
        database.commit()
    with closing(Items(path)) as items:
        assert items.page("mail", "", 0, 20) == [("a", "text", "bob", 7.0, None, None)]
        items.describe("mail", {"a": ("Größe & more", "moved")})
        assert items.count("mail", "GRÖSSE") == items.count("mail", "TEXT") == 1
        assert items.count("mail", "bob") == 0
    with closing(Items(path)) as items:
        assert items.get("mail", "a").title == "Größe & more"
