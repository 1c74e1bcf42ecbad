"""Programs and promises of earlier versions, which the present version must keep."""
