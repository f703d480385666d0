"""Writes files as programs write them that cannot be installed here: after their documentation, with made-up rows.

    python3 by_hand.py

The README of this directory says where each format is documented.
"""

import gzip
import pathlib

HERE = pathlib.Path(__file__).parent
BOM = "\ufeff"

FILES = {
    # Excel, "CSV UTF-8 (comma delimited)" and "CSV" where the decimal mark is a comma; quotes only where a field needs them.
    "excel/utf8.csv": BOM + 'From,To,Note\r\n"Portland, Oregon",Paris,"first line\nsecond, line"\r\nParis,Rome,\r\n007,7,\r\n',
    "excel/semicolons.csv": "Kunde;Partner;Betrag\r\n1001;1002;0,5\r\n1002;1003;1.234,00\r\n2001;2002;\r\n",
    "excel/semicolons_bom.csv": BOM + "source;target;weight\r\n1001;1002;0,5\r\n1002;1003;2\r\n2001;2002;1\r\n",
    "excel/sep_line.csv": "sep=;\r\nfrom;to\r\nanna;bert\r\nbert;carl\r\ndora;emil\r\n",
    "excel/macintosh.csv": "from,to\ranna,bert\rbert,carl\rdora,emil\r",
    "excel/empty_cells.csv": "from,to,,\r\nanna,bert,,\r\nbert,carl,,\r\n,,,\r\n",  # an emptied row is still written
    "excel/unicode_text.txt": "from\tto\r\nanna\tbert\r\n".encode("utf-16"),
    "excel/latin_1.csv": "from,to\r\nJos\u00e9,Ren\u00e9\r\n".encode("latin-1"),
    # Gephi, Data Laboratory > Export table.
    "gephi/edges.csv": 'Source,Target,Type,Id,Label,timeset,Weight\n1,2,Undirected,0,,,1.0\n2,3,Undirected,1,"a, b",,2.5\n10,20,Undirected,2,,,1.0\n',
    "gephi/edges_id_first.csv": "Id,Source,Target,Type,Weight\n0,a,b,Directed,1.0\n1,b,c,Directed,0.5\n2,x,y,Directed,1.0\n",
    "gephi/nodes.csv": 'Id,Label,timeset,modularity_class\n1,"One, first",,0\n2,Two,,0\n3,Three,,0\n10,Ten,,1\n20,Twenty,,1\n99,Alone,,2\n',
    "gephi/matrix.csv": ";a;b;c\na;0;1;0\nb;0;0;1\nc;0;0;0\n",
    # neo4j-admin database import: headers with types and identifier spaces; a header in a file of its own.
    "neo4j/relationships.csv": ":START_ID,:END_ID,:TYPE\nann,bob,KNOWS\nbob,cat,KNOWS\ndan,eve,KNOWS\n",
    "neo4j/roles.csv": ':START_ID,role,:END_ID,:TYPE\nkay,"Lead, first",m1,ACTED_IN\nkay,Guest,m2,ACTED_IN\nlou,Guest,m3,ACTED_IN\n',
    "neo4j/spaces.csv": ":START_ID(Person),since:int,:END_ID(Person),:TYPE\n1,1999,2,KNOWS\n2,2001,3,KNOWS\n10,2001,20,KNOWS\n",
    "neo4j/two_spaces.csv": ":START_ID(Person),:END_ID(Film)\n1,1\n2,1\n3,2\n",
    "neo4j/nodes.csv": 'personId:ID,name,:LABEL\nann,"Ann, A.",Person\nbob,Bob,Person\ncat,Cat,Person\ndan,Dan,Person\neve,Eve,Person\nfay,Fay,Person\n',
    "neo4j/apart/roles.csv": 'kay,"Lead",m1,ACTED_IN\nkay,"Guest",m2,ACTED_IN\nlou,"Guest",m3,ACTED_IN\n',
    "neo4j/apart/roles-header.csv": ":START_ID,role,:END_ID,:TYPE\n",
    "neo4j/apoc_all.csv": '"_id","_labels","name","_start","_end","_type","since"\n"0",":Person","Ann",,,,\n"1",":Person","Bob",,,,\n"2",":Person","Cat",,,,\n,,,"0","1","KNOWS","1999"\n',
    "neo4j/apoc_query.csv": '"a.name","b.name"\n"Ann","Bob"\n"Bob","Cat"\n',
    "neo4j/cypher_shell.csv": 'a.name, b.name\n"Ann", "Bob"\n"Bob", "Cat"\n"Dan", "Eve"\n',
    # KONECT: out.NAME beside meta.NAME and README.NAME.
    "konect/out.plain": "% sym unweighted\n% 3 5 5\n1 2\n2 3\n10 20\n",
    "konect/out.weighted": "% asym positive\n1\t2\t1\t1082040961\n2\t3\t4\t1082155839\n10\t20\t2\t1082414391\n",
    "konect/dataset/out.small": "% sym unweighted\n1 2\n2 3\n10 20\n",
    "konect/dataset/meta.small": "name: Small network\ncode: SM\nurl: http://example.org/\n",
    "konect/dataset/README.small": "Small network, part of a collection\n===\n\nout.small holds one edge a line.\n",
    # SNAP.
    "snap/web.txt": "# Directed graph (each unordered pair of nodes is saved once): web.txt \n# Nodes: 5 Edges: 3\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n10\t20\n",
    "snap/web_crlf.txt": "# FromNodeId\tToNodeId\r\n1\t2\r\n2\t3\r\n10\t20\r\n",
    "snap/combined.txt": "0 1\n0 2\n10 20\n",
    "snap/communities.txt": "1\t2\t3\n4\t5\n6\t7\t8\t9\n",  # a community a line
    "snap/signed.csv": "6,2,4,1289241911.72836\n6,5,-2,1289241941.53378\n1,15,1,1289243140.39049\n",
    "snap/hyperlinks.tsv": "SOURCE_SUBREDDIT\tTARGET_SUBREDDIT\tPOST_ID\tTIMESTAMP\tLINK_SENTIMENT\tPROPERTIES\ncats\tdogs\t1u4nrps\t2013-12-31 16:39:58\t1\t345.0,298.0,0.75\ndogs\tbirds\t1u4qkd\t2013-12-31 18:18:37\t-1\t101.0,98.0,0.74\nfish\tsea\t1u4qkx\t2014-01-01 14:54:35\t1\t85.0,85.0,0.75\n",
    "snap/musae.csv": "id_1,id_2\n0,1\n1,2\n10,20\n",
    "snap/deezer.csv": "node_1,node_2\n0,1\n1,2\n10,20\n",
    # LDBC Graphalytics and the LDBC Social Network Benchmark (CsvBasic, bars).
    "ldbc/small.e": "1 2 0.5\n2 3 0.25\n10 20 1.0\n",
    "ldbc/small.v": "1\n2\n3\n10\n20\n99\n",
    "ldbc/small.properties": "graph.small.vertex-file = small.v\ngraph.small.edge-file = small.e\n",
    "ldbc/small-WCC": "1 1\n2 1\n3 1\n10 10\n20 10\n99 99\n",
    "ldbc_snb/person_knows_person_0_0.csv": "Person.id|Person.id|creationDate\n933|2199023256816|2010-03-13T07:37:21.718+0000\n2199023256816|4139|2010-03-09T02:24:00.955+0000\n6597069777240|8333|2010-07-18T01:31:46.498+0000\n",
    "ldbc_snb/person.csv": "id|firstName|lastName\n933|Mahinda|Perera\n4139|Baruch|Dego\n",
    # DIMACS: shortest paths, colouring, matching; METIS; GAP.
    "dimacs/roads.gr": "c made up\np sp 4 3\na 1 2 5\na 2 3 7\na 10 20 1\n",
    "dimacs/roads.txt": "c made up\np sp 4 3\na 1 2 5\na 2 3 7\na 10 20 1\n",
    "dimacs/colours.col": "c made up\np edge 4 3\ne 1 2\ne 2 3\ne 3 4\n",
    "metis/small.graph": "4 3\n2\n1 3\n2 4\n3\n",
    "metis/small.txt": "4 3\n2\n1 3\n2 4\n3\n",
    "gap/weighted.wel": "0 1 5\n1 2 7\n10 20 1\n",
    # Open Graph Benchmark: no header; RAPIDS cuGraph's documentation: spaces in .csv.
    "ogb/edge.csv": "0,1\n1,2\n10,20\n",
    "ogb/num-edge-list.csv": "3\n",
    "cugraph/karate.csv": "1 2 1.0\n2 3 1.0\n10 20 1.0\n",
    "cugraph/web.csv": "1\t2\n2\t3\n10\t20\n",
    # Warehouses: BigQuery's export, Athena (all quoted), Snowflake's unload (\\N), Hive text (Ctrl-A), mysql -B.
    "warehouses/bigquery-000000000000.csv": 'customer_a,customer_b,reason\nC-1,C-2,"same phone, same name"\nC-2,C-3,\nC-8,C-9,\n',
    "warehouses/athena.csv": '"src","dst"\n"C-1","C-2"\n"C-2","C-3"\n"C-8","C-9"\n',
    "warehouses/snowflake/data_0_0_0.csv": "C-1,C-2\nC-2,C-3\n",
    "warehouses/snowflake/data_0_1_0.csv": "C-8,C-9\nC-9,C-7\n",
    "warehouses/nulls.csv": "src,dst\nC-1,C-2\n\\N,C-7\n\\N,C-8\n",  # MySQL, Hive, Snowflake and PostgreSQL write NULL so
    "warehouses/hive/000000_0": "C-1\x01C-2\x01same phone\nC-2\x01C-3\x01\nC-8\x01C-9\x01\n",
    "warehouses/mysql.tsv": "src\tdst\nann\tbob\nbob\tcat\ndan\teve\n",
    # graph-tool, Cytoscape SIF, STRING, UCINET DL, Wikipedia's TSV, dedupe, OpenRefine.
    "others/cytoscape.sif": "ann pp bob\nbob pp cat\ndan pp eve fay\n",
    "others/string.protein.links.txt": "protein1 protein2 combined_score\n9606.P1 9606.P2 490\n9606.P2 9606.P3 198\n9606.P8 9606.P9 159\n",
    "others/ucinet.dl": "dl n=3 format=edgelist1\nlabels:\nann,bob,cat\ndata:\n1 2\n2 3\n",
    "others/uniq_c.txt": "      2 ann bob\n      1 bob cat\n     10 dan eve\n",
    "others/ls_arrow.txt": "1 -> 2\n2 -> 3\n10 -> 20\n",
    "others/dot_lines.gv": "digraph g {\n  ann -> bob;\n  bob -> cat;\n}\n",
    "others/tgf.tgf": "1 Ann\n2 Bob\n3 Cat\n#\n1 2 knows\n2 3 knows\n",
    "others/page.html": "<!DOCTYPE html>\n<html><head><title>404: Not Found</title></head>\n<body>edges.csv, not found</body></html>\n",
    "others/lfs_pointer.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
    "others/mixed_directory/edges.csv": "from,to\nann,bob\nbob,cat\n",
    "others/mixed_directory/edges.csv~": "from,to\nann,zoe\n",
    "others/mixed_directory/edges.csv.bak": "from,to\nann,yan\n",
    "others/mixed_directory/Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(56),
    "others/mixed_directory/desktop.ini": "[.ShellClassInfo]\r\nIconIndex=0\r\n",
    "others/mixed_directory/more/edges.csv": "from,to\ndan,eve\n",
    "others/edges.csv~": "from,to\nann,zoe\n",
    "others/Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(56),
    "others/empty.csv": "",
    "others/empty.csv.gz": b"",
    "others/empty_inside.csv.gz": gzip.compress(b"", mtime=0),
    "others/cut_short.csv.gz": gzip.compress(b"from,to\nann,bob\nbob,cat\n", mtime=0)[:-9],
    "others/newline_alone.csv": "\n",
    "others/comments_alone.txt": "# nothing\n# here\n",
    "others/concatenated.csv": BOM + "1,2\n" + BOM + "2,3\n" + BOM + "10,20\n",
    "others/concatenated_headers.csv": BOM + "src,dst\n1,2\n2,3\n" + BOM + "src,dst\n10,20\n",
}

FILES["others/text_far_down.csv"] = "1,2\n" * 499 + "x7,2\n" + "1,3\n" * 10
FILES["snap/web.txt.gz"] = gzip.compress(FILES["snap/web.txt"].encode(), mtime=0)
FILES["ogb/edge.csv.gz"] = gzip.compress(FILES["ogb/edge.csv"].encode(), mtime=0)

for name, content in FILES.items():
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
