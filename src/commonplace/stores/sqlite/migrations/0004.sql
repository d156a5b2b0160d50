-- Who speaks where, so that the names in a question can be told from its other words.
create index chunk_speaker on chunk (scope, speaker);
