"""Writes the files of this directory with the programs themselves.

    python3 -m venv venv && venv/bin/pip install pandas polars duckdb networkx igraph pyarrow openpyxl pydot splink \
        recordlinkage rdflib scipy pyspark lxml
    apt-get install r-base-core r-cran-igraph sqlite3 miller jq postgresql    # and a Java runtime for Spark
    venv/bin/python make.py              # all programs
    venv/bin/python make.py pandas r     # these

One function a program; a program that is missing is named and left out. `by_hand.py` writes what other programs are documented to
write. All names and numbers are made up. `cases.json` says what is right for each file.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PEOPLE = [("alice", "bob", 0.5), ("bob", "carol", 0.25), ("dave", "erin", 1.0)]
CITIES = [("Portland, Oregon", "New York"), ("New York", 'The "Big" Easy'), ("São Paulo", "Zürich; Altstadt")]
NUMBERS = [(1, 2), (2, 3), (10, 20)]


def pandas(at):
    import numpy
    import pandas

    people = pandas.DataFrame(PEOPLE, columns=["source", "target", "weight"])
    people.to_csv(at / "index.csv")
    people.to_csv(at / "no_index.csv", index=False)
    people.to_csv(at / "no_header.csv", index=False, header=False)
    people.to_csv(at / "tab.tsv", index=False, sep="\t")
    people.to_csv(at / "decimal_comma.csv", index=False, sep=";", decimal=",")
    people.to_csv(at / "packed.csv.gz", index=False)
    people.rename(columns={"source": "record_a", "target": "record_b"}).to_csv(at / "unknown_names.csv", index=False)
    people.to_csv(at / "quote_all.csv", index=False, quoting=1)
    people.to_csv(at / "windows.csv", index=False, lineterminator="\r\n", encoding="utf-8-sig")
    cities = pandas.DataFrame(CITIES, columns=["from", "to"])
    cities.to_csv(at / "escaped.csv", index=False, quoting=3, escapechar="\\")
    cities["note"] = ["one\nline, more", "", None]
    cities.to_csv(at / "quoted.csv", index=False)
    missing = pandas.DataFrame({"from": [1, 2, 10, None], "to": [2, 3, 20, 4]})
    missing.to_csv(at / "missing.csv", index=False)  # a missing number makes the column one of floats
    missing.dropna().to_csv(at / "floats.csv", index=False)
    missing.dropna().to_parquet(at / "floats.parquet", index=False)
    missing.to_parquet(at / "missing.parquet", index=False)
    pairs = pandas.DataFrame(NUMBERS, columns=["id_1", "id_2"])
    pairs.to_parquet(at / "numbers.parquet", index=False)
    pairs.assign(score=1.5)[["score", "id_2", "id_1"]].to_parquet(at / "unknown_names.parquet")
    people.set_index("source").to_parquet(at / "index.parquet")  # the index is a column at the end
    people.astype({"source": "category", "target": "category"}).to_parquet(at / "category.parquet")
    signed = pandas.DataFrame({"start_id": [-5, 7, -3], "end_id": [7, 8, -4]})
    signed.to_csv(at / "signed.csv", index=False)
    signed.to_parquet(at / "signed.parquet")
    pandas.DataFrame({"src": ["007", "7"], "dst": ["7", "008"]}).to_csv(at / "zeros.csv", index=False)
    people.groupby(["source", "target"])["weight"].sum().to_csv(at / "grouped.csv")
    pandas.crosstab(people.source, people.target).to_csv(at / "crosstab.csv")  # a matrix, not a list
    people.to_json(at / "records.jsonl", orient="records", lines=True)
    people.to_json(at / "columns.json")
    people.to_excel(at / "people.xlsx", index=False)
    people.to_html(at / "people.html", index=False)
    people.head(0).to_csv(at / "header_alone.csv", index=False)
    people.head(0).to_parquet(at / "no_rows.parquet")
    numpy.savetxt(at / "numpy_default.txt", numpy.array(NUMBERS))  # each number as a float of 18 digits
    numpy.savetxt(at / "numpy_header.csv", numpy.array(NUMBERS), fmt="%d", delimiter=",", header="src,dst")


def polars(at):
    import polars

    people = polars.DataFrame(PEOPLE, schema=["src", "dst", "weight"], orient="row")
    people.write_csv(at / "people.csv")
    people.write_csv(at / "semicolons.csv", separator=";", quote_style="always")
    people.write_csv(at / "bars_no_header.csv", separator="|", include_header=False)
    people.write_csv(at / "bom.csv", include_bom=True, line_terminator="\r\n")
    people.with_row_index().write_csv(at / "row_index.csv")
    people.write_parquet(at / "zstd.parquet")
    people.write_parquet(at / "row_groups.parquet", row_group_size=1, compression="snappy")
    people.write_parquet(at / "lz4.parquet", compression="lz4")
    people.with_columns(polars.col("src", "dst").cast(polars.Categorical)).write_parquet(at / "categorical.parquet")
    people.write_ndjson(at / "people.ndjson")
    people.write_ipc(at / "people.arrow")
    far = polars.DataFrame({"src": [0, 2**64 - 1], "dst": [2**64 - 1, 2**63]}, schema={"src": polars.UInt64, "dst": polars.UInt64})
    far.write_parquet(at / "unsigned.parquet")
    far.write_csv(at / "unsigned.csv")


def pyarrow(at):
    import pyarrow
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.parquet

    people = pyarrow.table({"from": [s for s, _, _ in PEOPLE], "to": [t for _, t, _ in PEOPLE], "kind": ["a", "a", "b"]})
    pyarrow.csv.write_csv(people, at / "people.csv")
    pyarrow.dataset.write_dataset(people, at / "by_kind", format="parquet", partitioning=["kind"], partitioning_flavor="hive")
    names = pyarrow.array([f"person-{i}" for i in range(50)])  # categories that no row has
    categories = [pyarrow.DictionaryArray.from_arrays(pyarrow.array(ids, pyarrow.int32()), names) for ids in ([0, 1], [1, 2])]
    pyarrow.parquet.write_table(pyarrow.table(categories, ["source", "target"]), at / "categories.parquet")
    large = people.cast(pyarrow.schema([(name, pyarrow.large_string()) for name in people.column_names]))
    pyarrow.parquet.write_table(large, at / "large_strings.parquet", version="1.0", use_dictionary=False, compression="zstd")
    pyarrow.parquet.write_table(people, at / "brotli.parquet", compression="brotli")
    view = people.cast(pyarrow.schema([(name, pyarrow.binary()) for name in people.column_names]))
    pyarrow.parquet.write_table(view, at / "binary.parquet", data_page_version="2.0", compression="gzip")
    nested = pyarrow.table({"edge": [{"src": s, "dst": t} for s, t in NUMBERS]})
    pyarrow.parquet.write_table(nested, at / "nested.parquet")
    delta = pyarrow.table({"src": [s for s, _ in NUMBERS], "dst": [t for _, t in NUMBERS]}, schema=pyarrow.schema([("src", pyarrow.int32()), ("dst", pyarrow.int32())]))
    pyarrow.parquet.write_table(delta, at / "delta.parquet", use_dictionary=False, column_encoding="DELTA_BINARY_PACKED")
    twice = pyarrow.table([["a", "b"], ["b", "c"]], names=["id", "id"])
    pyarrow.parquet.write_table(twice, at / "same_names.parquet")


def duckdb(at):
    import duckdb

    sql = duckdb.connect().execute
    sql("CREATE TABLE people (record_a VARCHAR, record_b VARCHAR, score DOUBLE, block VARCHAR)")
    for source, target, weight in PEOPLE:
        sql("INSERT INTO people VALUES (?, ?, ?, ?)", [source, target, weight, source[0]])
    sql(f"CREATE TABLE numbers AS SELECT * FROM (VALUES {', '.join(map(str, NUMBERS))}) v(src, dst)")
    os.chdir(at)
    sql("COPY people TO 'people.csv'")
    sql("COPY people TO 'no_header.csv' (HEADER false)")
    sql("COPY people TO 'bars.csv' (DELIMITER '|')")
    sql("COPY people TO 'quoted.csv' (FORCE_QUOTE *)")
    sql("COPY people TO 'tabs.tsv' (DELIMITER '\t')")
    sql("COPY numbers TO 'numbers.csv' (HEADER false)")
    sql("COPY numbers TO 'numbers_header.csv.gz'")
    sql("COPY numbers TO 'numbers.csv.zst'")
    for codec in ("zstd", "snappy", "gzip", "uncompressed"):
        sql(f"COPY numbers TO '{codec}.parquet' (COMPRESSION {codec})")
    sql("COPY (SELECT score, record_a AS unique_id_l, record_b AS unique_id_r FROM people) TO 'people.parquet'")
    sql("COPY people TO 'hive' (FORMAT parquet, PARTITION_BY (block))")
    sql("COPY people TO 'hive_csv' (FORMAT csv, PARTITION_BY (block))")
    sql("COPY (SELECT src::HUGEINT AS src, dst::DECIMAL(10, 0) AS dst FROM numbers) TO 'odd_types.parquet'")
    sql("COPY (SELECT uuid() AS src, record_b AS dst FROM people LIMIT 0) TO 'no_rows.csv'")
    sql("COPY numbers TO 'array.json' (ARRAY true)")
    (at / "shell_box.txt").write_text(str(duckdb.connect().sql(f"SELECT * FROM (VALUES {', '.join(map(str, NUMBERS))}) v(src, dst)")))


def networkx(at):
    import networkx

    numbers = networkx.Graph(NUMBERS)
    people = networkx.Graph()
    people.add_weighted_edges_from(PEOPLE)
    cities = networkx.Graph(CITIES)
    networkx.write_edgelist(numbers, at / "data.edgelist")  # `1 2 {}`
    networkx.write_edgelist(people, at / "dicts.edgelist")  # `alice bob {'weight': 0.5}`
    networkx.write_edgelist(people, at / "no_data.edgelist", data=False)
    networkx.write_edgelist(people, at / "commas.csv", delimiter=",", data=["weight"])
    networkx.write_edgelist(cities, at / "names_with_spaces.edgelist")
    networkx.write_edgelist(cities, at / "names_with_tabs.edgelist", delimiter="\t", data=False)
    networkx.write_weighted_edgelist(people, at / "weighted.edgelist")
    networkx.write_adjlist(networkx.compose(numbers, networkx.star_graph(3)), at / "star.adjlist")
    networkx.write_multiline_adjlist(people, at / "people.multiline_adjlist")
    networkx.write_gexf(people, at / "people.gexf")
    networkx.write_graphml(people, at / "people.graphml")
    networkx.write_gml(people, at / "people.gml")
    networkx.write_pajek(people, at / "people.net")
    networkx.write_graph6(networkx.convert_node_labels_to_integers(numbers), at / "numbers.g6")
    networkx.nx_pydot.write_dot(people, at / "people.dot")
    (at / "tree.txt").write_text("\n".join(networkx.generate_network_text(networkx.DiGraph(NUMBERS))) + "\n")
    (at / "node_link.json").write_text(json.dumps(networkx.node_link_data(people, edges="links")))
    networkx.to_pandas_edgelist(people).to_csv(at / "to_pandas_edgelist.csv", index=False)


def igraph(at):
    import igraph

    graph = igraph.Graph.TupleList(PEOPLE, weights=True)
    graph.write_ncol(str(at / "people.ncol"))
    graph.write_lgl(str(at / "people.lgl"))
    graph.write_edgelist(str(at / "indices.edgelist"))
    graph.write_graphml(str(at / "people.graphml"))
    graph.write_gml(str(at / "people.gml"))
    graph.write_pajek(str(at / "people.net"))
    graph.write_dot(str(at / "people.dot"))
    graph.write_leda(str(at / "people.lgr"), names="name", weights="weight")
    flow = igraph.Graph(NUMBERS[:2] + [(3, 0)], directed=True)
    flow.write_dimacs(str(at / "flow.dimacs"), source=0, target=3, capacity=[1, 2, 3])


def scipy(at):
    import scipy.io
    import scipy.sparse

    rows, columns = zip(*NUMBERS)
    scipy.io.mmwrite(at / "pattern.mtx", scipy.sparse.coo_matrix(([1] * 3, (rows, columns))), field="pattern")
    scipy.io.mmwrite(at / "real.mtx", scipy.sparse.coo_matrix(([0.5, 1.5, 2.5], (rows, columns))))
    shutil.copy(at / "pattern.mtx", at / "matrix_market.txt")


def rdflib(at):
    import rdflib

    graph = rdflib.Graph()
    name = rdflib.Namespace("http://example.org/")
    for source, target, _ in PEOPLE:
        graph.add((name[source], name.knows, name[target]))
    for ending in ("nt", "ttl", "nquads", "xml"):
        store = rdflib.Dataset() if ending == "nquads" else graph
        if ending == "nquads":
            for triple in graph:
                store.add((*triple, name.graph))
        store.serialize(at / f"people.{ending}", format=ending)
    shutil.copy(at / "people.nt", at / "triples.txt")


def splink(at):
    import pandas
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on
    import splink.comparison_library as compare

    people = [("r1", "Ann", "Lee"), ("r2", "Ann", "Lee"), ("r3", "Anne", "Lee"), ("r4", "Bob", "Ray"), ("r5", "Bob", "Ray"), ("r6", "Cy", "Poe")]
    frame = pandas.DataFrame(people, columns=["unique_id", "first", "last"])
    settings = SettingsCreator("dedupe_only", comparisons=[compare.ExactMatch("first")], blocking_rules_to_generate_predictions=[block_on("last")])
    try:
        linker = Linker(frame, settings, db_api=DuckDBAPI())
    except Exception:  # Splink 5 registers its tables first
        api = DuckDBAPI()
        linker = Linker(api.register(frame), settings)
    matches = linker.inference.predict()
    matches.as_pandas_dataframe().to_csv(at / "predictions.csv", index=False)
    matches.to_parquet(str(at / "predictions.parquet"), overwrite=True)
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(matches, 0.0)
    clusters.to_csv(str(at / "clusters.csv"), overwrite=True)


def recordlinkage(at):
    import pandas
    import recordlinkage

    people = pandas.DataFrame({"last": ["Lee", "Lee", "Ray", "Ray"]}, index=pandas.Index(["rec-1", "rec-2", "rec-3", "rec-4"], name="rec_id"))
    pairs = recordlinkage.Index().block("last").index(people)
    compare = recordlinkage.Compare()
    compare.exact("last", "last", label="last")
    compare.compute(pairs, people).to_csv(at / "features.csv")


def spark(at):
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    people = session.createDataFrame([(s, t, w, s[0]) for s, t, w in PEOPLE], ["src", "dst", "weight", "block"])
    numbers = session.createDataFrame(NUMBERS, ["src", "dst"])
    people.coalesce(1).write.csv(str(at / "people_header"), header=True)
    people.repartition(2, "src").write.csv(str(at / "people_parts"), header=True)
    numbers.repartition(2).write.csv(str(at / "numbers"))
    people.coalesce(1).write.csv(str(at / "tabs"), sep="\t", header=True, compression="gzip")
    people.coalesce(1).write.partitionBy("block").parquet(str(at / "by_block"))
    people.coalesce(1).write.partitionBy("block").csv(str(at / "by_block_csv"), header=True)
    numbers.coalesce(1).write.parquet(str(at / "numbers_parquet"))
    numbers.coalesce(1).write.json(str(at / "json"))
    numbers.rdd.saveAsTextFile(str(at / "rows_as_text"))
    session.stop()


def r(at):
    pairs = ", ".join(f'c("{s}", "{t}")' for s, t, _ in PEOPLE)
    script = f"""
        people <- as.data.frame(do.call(rbind, list({pairs})))
        names(people) <- c("from", "to")
        people$weight <- c(0.5, 0.25, 1)
        write.csv(people, "write_csv.csv")
        write.csv(people, "no_row_names.csv", row.names = FALSE)
        write.csv2(people, "write_csv2.csv", row.names = FALSE)
        write.table(people, "write_table.txt")
        write.table(people, "write_table.tsv", sep = "\\t", quote = FALSE)
        write.table(people, "bare.txt", quote = FALSE, row.names = FALSE, col.names = FALSE)
        g <- igraph::graph_from_data_frame(people)
        write.csv(igraph::as_data_frame(g, "edges"), "igraph_edges.csv", row.names = FALSE)
    """
    subprocess.run(["Rscript", "-e", script], cwd=at, check=True)


def sqlite(at):
    table = "CREATE TABLE e (a, b, note);" + "".join(f"INSERT INTO e VALUES ('{s}', '{t}', 'w, {w}');" for s, t, w in PEOPLE)
    for mode, name in [("list", "list.txt"), ("csv", "csv.csv"), ("tabs", "tabs.tsv"), ("column", "column.txt"), ("box", "box.txt"), ("insert", "insert.sql")]:
        with open(at / name, "w") as out:
            subprocess.run(["sqlite3", "-batch", ":memory:"], input=f"{table}\n.headers {'on' if mode != 'list' else 'off'}\n.mode {mode}\nSELECT * FROM e;\n", text=True, stdout=out, check=True)


def miller(at):
    rows = "src,dst\n" + "".join(f"{s},{t}\n" for s, t in NUMBERS)
    for ending, flags in [("dkvp", ["--odkvp"]), ("pprint.txt", ["--opprint"]), ("nidx.txt", ["--onidx"]), ("tsv", ["--otsv"]), ("markdown.txt", ["--omd"])]:
        with open(at / f"numbers.{ending}", "w") as out:
            subprocess.run(["mlr", "--icsv", *flags, "cat"], input=rows, text=True, stdout=out, check=True)


def jq(at):
    rows = json.dumps([{"s": s, "t": t} for s, t in CITIES + [("tab\there", "back\\slash")]])
    for ending, make in [("csv", "@csv"), ("tsv", "@tsv")]:
        with open(at / f"cities.{ending}", "w") as out:
            subprocess.run(["jq", "-r", f".[] | [.s, .t] | {make}"], input=rows, text=True, stdout=out, check=True)


def postgresql(at):
    """Needs a server: `PSQL="psql -h /tmp ..." make.py postgresql`."""
    psql = os.environ["PSQL"].split()
    rows = ", ".join(f"('{s}', '{t}', '{w}, {s}')" for s, t, w in PEOPLE)
    table = f"CREATE TEMP TABLE e (source_id text, target_id text, note text); INSERT INTO e VALUES {rows}; INSERT INTO e VALUES (E'tab\\there', NULL, '');"
    for name, flags, query in [
        ("copy.csv", [], "COPY e TO STDOUT (FORMAT csv, HEADER)"),
        ("copy.txt", [], "COPY (SELECT * FROM e WHERE target_id IS NOT NULL) TO STDOUT"),
        ("copy_nulls.txt", [], "COPY e TO STDOUT"),
        ("aligned.txt", [], "SELECT * FROM e WHERE target_id IS NOT NULL"),
        ("unaligned.txt", ["-A"], "SELECT * FROM e WHERE target_id IS NOT NULL"),
        ("csv.csv", ["--csv"], "SELECT note, source_id, target_id FROM e WHERE target_id IS NOT NULL"),
    ]:
        with open(at / name, "w") as out:
            subprocess.run([*psql, "-q", *flags, "-c", table, "-c", query], stdout=out, check=True)


def graphviz(at):
    subprocess.run(["dot", "-Tplain", "-o", at / "plain.txt"], input="digraph { alice -> bob -> carol; dave -> erin }", text=True, check=True)
    subprocess.run(["dot", "-Tdot", "-o", at / "laid_out.txt"], input="digraph { 1 -> 2 -> 3; 10 -> 20 }", text=True, check=True)


PROGRAMS = [pandas, polars, pyarrow, duckdb, networkx, igraph, scipy, rdflib, splink, recordlinkage, spark, r, sqlite, miller, jq, postgresql, graphviz]

for program in PROGRAMS:
    if sys.argv[1:] and program.__name__ not in sys.argv[1:]:
        continue
    at = HERE.resolve() / program.__name__
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir()
    try:
        program(at)
    except Exception as error:
        print(f"{program.__name__}: left out: {type(error).__name__}: {error}", file=sys.stderr)
