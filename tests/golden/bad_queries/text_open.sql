SELECT 'never ends
FROM rows