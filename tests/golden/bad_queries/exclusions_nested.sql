SELECT * FROM rows MATCH_RECOGNIZE (
  ORDER BY t
  PATTERN (A {- B {- C -} -})
)
