"""``MATCH_RECOGNIZE``: the row patterns of standard SQL over tables.

`text` reads a query and checks its clauses against the columns of their input; what it gives is a frozen
`engine.plan.Plan`. `engine` finds the matches in a sorted table of Arrow and computes the rows of the result.
It knows neither SQL nor Spark.
"""
