INSERT INTO "table"(a,b,note) VALUES('alice','bob','w, 0.5');
INSERT INTO "table"(a,b,note) VALUES('bob','carol','w, 0.25');
INSERT INTO "table"(a,b,note) VALUES('dave','erin','w, 1.0');
