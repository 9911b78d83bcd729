"""The table of the endpoints for programs."""

from __future__ import annotations

from kesler.service import api, bodies, label_studio
from kesler.service.api import LINES, Endpoint
from kesler.service.bodies import LearnRequest, PredictRequest
from kesler.service.import_options import FILES, OPTIONS

MODEL = "/api/models/{model}"
STUDIO = f"{MODEL}/label-studio"
ENDPOINTS = (
    Endpoint("models", "GET", "/api/models", "read", "The models.", api.models, (bodies.Models,)),
    Endpoint("create", "POST", "/api/models", "admin", "Create a model.", api.create,
             (bodies.Figures,), bodies.CreateRequest),
    Endpoint("figures", "GET", MODEL, "read", "The sizes and mistakes of a model.", api.figures,
             (bodies.Figures,)),
    Endpoint("classes", "GET", f"{MODEL}/classes", "read", "The classes of a model.", api.classes,
             (bodies.Classes,), query={
                 "limit": (int, "the most classes"), "start": (int, "the first one"),
                 "q": (str, "a text that their names contain; those that begin with it first")}),
    Endpoint("delete", "DELETE", MODEL, "admin", "Delete a model for good.", api.delete,
             (bodies.Deleted,)),
    Endpoint("predict", "POST", f"{MODEL}/predict", "read", "Predict rows, or a message "
             "of mail (message/rfc822).", api.predict,
             (bodies.Prediction, bodies.Predictions), PredictRequest, takes_lines=True),
    Endpoint("learn", "POST", f"{MODEL}/learn", "teach", "Learn rows.", api.learn,
             (bodies.Receipt, bodies.Outcomes), LearnRequest, takes_lines=True),
    Endpoint("undo", "POST", f"{MODEL}/undo", "teach", "Take events back.", api.undo,
             (bodies.Receipt, bodies.Outcomes), bodies.UndoRequest),
    Endpoint("relabel", "POST", f"{MODEL}/relabel", "teach", "Change the answer of a row.",
             api.relabel, (bodies.Receipt,), bodies.RelabelRequest),
    Endpoint("rename", "POST", f"{MODEL}/rename", "teach", "Rename a class.", api.rename,
             (bodies.Receipt,), bodies.RenameRequest),
    Endpoint("merge", "POST", f"{MODEL}/merge", "teach", "Merge a class into another.", api.merge,
             (bodies.Receipt,), bodies.MergeRequest),
    Endpoint("forget", "POST", f"{MODEL}/forget", "admin", "Remove rows for good: one by its id, "
             "all about a subject or all of a class.", api.forget, (bodies.Receipt,),
             bodies.ForgetRequest),
    Endpoint("history", "GET", f"{MODEL}/history", "read", "Events, the last first.", api.history,
             (bodies.History,), query={
                 "limit": (int, "the most events"),
                 "before": (int, "the number of an event: only earlier ones")}),
    Endpoint("items", "GET", f"{MODEL}/items", "read", "Rows that wait for an answer.", api.items,
             (bodies.Items,), query={
                 "limit": (int, "the most items"), "start": (int, "the first one"),
                 "q": (str, "a text that they contain")}),
    Endpoint("discard", "POST", f"{MODEL}/discard", "teach", "Remove rows that wait for an answer.",
             api.discard, (bodies.DiscardReport,), bodies.DiscardRequest),
    Endpoint("import", "POST", f"{MODEL}/import", "teach", "File the rows of CSV, JSON, Parquet, a "
             "workbook, mail or FASTA: those with a label are learnt, the others wait for an "
             "answer.",
             api.import_file, (bodies.ImportReport,), query=OPTIONS, files=FILES),
    Endpoint("export_jsonl", "GET", f"{MODEL}/export.jsonl", "read", "Rows and answers as JSON "
             "lines.", api.export_jsonl, LINES),
    Endpoint("export_csv", "GET", f"{MODEL}/export.csv", "read", "Rows and answers as CSV.",
             api.export_csv, "text/csv"),
    Endpoint("label_studio_health", "GET", f"{STUDIO}/health", "read", "Whether Label Studio can "
             "ask the model.", label_studio.health, (bodies.LabelStudioHealth,)),
    Endpoint("label_studio_setup", "POST", f"{STUDIO}/setup", "read", "Check the labelling "
             "interface of a project of Label Studio.", label_studio.setup,
             (bodies.LabelStudioVersion,), bodies.LabelStudioSetup),
    Endpoint("label_studio_predict", "POST", f"{STUDIO}/predict", "read", "Predict tasks of Label "
             "Studio.", label_studio.predict, (bodies.LabelStudioPredictions,),
             bodies.LabelStudioTasks),
    Endpoint("label_studio_webhook", "POST", f"{STUDIO}/webhook", "teach", "Learn, change and take "
             "back what people answer in Label Studio.", label_studio.webhook,
             (bodies.LabelStudioChange,), bodies.LabelStudioEvent),
)  # fmt: skip
