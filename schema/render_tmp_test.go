package schema
import ("testing";"fmt";"os")
func TestDump(t *testing.T){
 ms,err:=Render(Options{Database:"retrylens"}); if err!=nil{t.Fatal(err)}
 for _,m:=range ms{ for i,s:=range m.Statements{ os.WriteFile(fmt.Sprintf("/tmp/rend/%02d_%02d.sql",m.ID,i),[]byte(s),0o644)}}
}
